"""The report on scores: one self-contained HTML page, and its figures and tables as files."""

from .export import write_figures, write_tables
from .figures.picture import write_picture
from .figures.png import check_png
from .page.page import write_report

__all__ = ["check_png", "write_figures", "write_picture", "write_report", "write_tables"]
