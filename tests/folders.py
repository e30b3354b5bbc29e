"""Files of a test: a challenge, or what else a folder holds, from one table of names."""


def write_files(folder, files):
    """Write files by their names, with the folders that they are in; each is a text, bytes or a list of lines."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, (bytes, str)) else "".join(f"{line}\n" for line in content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder
