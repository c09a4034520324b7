"""`interlock graph PATH|ID`: draw a workflow as text, Mermaid or SVG."""

from __future__ import annotations

import click

from interlock.authoring.graph.model import drawing_of
from interlock.cli.config import Config
from interlock.cli.options import with_config
from interlock.cli.references import workflow_at
from interlock.cli.screen import WIDEST_PROSE, block_of, width


@click.command(epilog="Example: interlock graph wr.release --format svg > release.svg")
@click.argument("workflow", metavar="PATH|ID")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "svg"]),
    default="text",
    show_default=True,
    help="The output format.",
)
@with_config
def command(config: Config, workflow: str, form: str) -> None:
    """Draw a workflow as text, Mermaid or SVG."""
    drawing = drawing_of(workflow_at(config, workflow).workflow)
    match form:
        case "mermaid":
            from interlock.authoring.graph.mermaid import mermaid_of

            text = mermaid_of(drawing)
        case "svg":
            from interlock.authoring.graph.svg import svg_of

            text = svg_of(drawing)
        case _:
            from interlock.authoring.graph.plain import drawing_text

            text = drawing_text(drawing, width() or WIDEST_PROSE)
    click.echo(block_of(text), nl=False)
