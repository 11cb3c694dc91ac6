"""Two Grafana dashboards and the alert rules beside them, written as Python and checked in as made.

`python -m dashboards.generate` makes the files anew; what starts a Grafana that shows them is in
`compose.yaml`.
"""
