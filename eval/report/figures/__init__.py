"""Figures of the report: plots, their panels, and the formats SVG and PNG."""
