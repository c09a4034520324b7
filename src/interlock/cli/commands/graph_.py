"""`interlock graph ID`: a workflow as text, as Mermaid, or as a picture."""

from __future__ import annotations

import click

from interlock.authoring.graph.model import drawing_of
from interlock.cli.given import loaded_of
from interlock.cli.options import config_of, data_options
from interlock.cli.screen import WIDEST, block_of, width


@click.command(epilog="Example: interlock graph wr.release --format svg > release.svg")
@click.argument("given", metavar="PATH|ID")
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text")
@data_options
def command(
    given: str, form: str, data_dir: str | None, project: str | None, workflows: tuple[str, ...]
) -> None:
    """Draw a workflow: its activities, steps, gates and loops, and the ways between them."""
    drawing = drawing_of(loaded_of(config_of(data_dir, project, workflows), given).workflow)
    match form:
        case "mermaid":
            from interlock.authoring.graph.mermaid import mermaid_of

            text = mermaid_of(drawing)
        case "svg":
            from interlock.authoring.graph.svg import svg_of

            text = svg_of(drawing)
        case _:
            from interlock.authoring.graph.plain import text_of

            text = text_of(drawing, width() or WIDEST)
    click.echo(block_of(text), nl=False)
