"""Line losses to why, how sure, and what would help."""
