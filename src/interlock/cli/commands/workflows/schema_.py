"""`interlock schema`: the JSON Schemas of the files that authors write."""

from __future__ import annotations

import click

from interlock.authoring.filetypes.schemas.published_schemas import ROOTS, published, schema_text
from interlock.cli.screen import inform, table

ENDING = ".schema.json"
NAMES = [file.removesuffix(ENDING) for file in ROOTS]


@click.command(epilog="Example: interlock schema step-workflow > step-workflow.schema.json")
@click.argument("name", metavar="NAME", required=False, type=click.Choice(NAMES))
def command(name: str | None) -> None:
    """Print the JSON Schema of a kind of file, or list the kinds.

    Editors with a YAML language server check a file against the schema that its first line names:
    # yaml-language-server: $schema=PATH
    """
    if name is not None:
        click.echo(schema_text(published()[name + ENDING]), nl=False)
        return
    rows = [(file.removesuffix(ENDING), title) for file, (_, title) in ROOTS.items()]
    table(rows, [("accent", "plain")] * len(rows))
    inform("`interlock init` writes the schemas of a new workflow, and the line that names them.")
