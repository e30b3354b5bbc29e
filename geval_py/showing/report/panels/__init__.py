"""The panels of a report: a question each, with its answer in a sentence, a chart and a table."""
