"""Why a score is what it is: arithmetic on the column of line losses."""
