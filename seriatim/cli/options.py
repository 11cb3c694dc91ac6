"""The options that several commands have, each declared once."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

WorkspacePath: TypeAlias = Annotated[
    Path, typer.Argument(help="A workspace directory, or one file that holds a topology.")
]
TopologyName: TypeAlias = Annotated[
    str,
    typer.Option("--topology", help="Which topology, where there are several.", show_default=False),
]
JoinedRun: TypeAlias = Annotated[
    str,
    typer.Option(
        "--run", help="The id of the run to join or to begin; fresh otherwise.", show_default=False
    ),
]
Pinned: TypeAlias = Annotated[
    bool, typer.Option("--pin", help="Refuse calls of tools that change while the run goes on.")
]
AuditPlace: TypeAlias = Annotated[
    str,
    typer.Option(
        "--audit",
        help="Where the audit log is: a path, or `sqlite:///PATH`.",
        show_default=False,
    ),
]
OtlpEndpoint: TypeAlias = Annotated[
    str,
    typer.Option(
        "--otlp",
        help="Send traces and metrics to this OTLP endpoint, such as http://localhost:4318.",
        show_default=False,
    ),
]
