"""Questions about spreadsheets: outline, range, search and trace.

`workbook` says what a workbook is, whatever file it came from; `xlsx` and `csv_file` read one as a
stream of rows. Each question is one module with one function over a workbook, and reads it once or
twice from its beginning; nothing keeps all cells in memory.
"""
