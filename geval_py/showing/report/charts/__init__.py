"""The charts of a report, in Altair, from values that are computed already; every mark is described in words."""
