"""Columns beside the columns of a recorded file of text: the line, and what is wrong with it. Pure."""

LINE, PROBLEM, TEXT = "__errata_line", "__errata_problem", "__errata_text"
"""Number of the line; why it is no row, or NULL; the text of a line that is no row."""
ROW_COLUMNS = {LINE: "long", PROBLEM: "string", TEXT: "string"}
ROWS_ENDING = ".rows.parquet"
"""End of the name of the file with the rows of a file of text, beside it."""
