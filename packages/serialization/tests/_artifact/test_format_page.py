"""docs/artifact_format.md says what the schema says."""

import re
from pathlib import Path

import pytest

from jaxtf.serialization._artifact import schema
from jaxtf.serialization._artifact.trailer import MAGIC, TRAILER_FORMAT
from jaxtf.serialization._record import kinds as kinds_module

PAGE = Path(__file__).parents[4] / "docs" / "artifact_format.md"
NUMBERS = {"b": "int8", "h": "int16", "H": "uint16", "I": "uint32", "?": "bool"}

if not PAGE.exists():
    pytest.skip("the page is in the repository, not in the package", allow_module_level=True)

TEXT = PAGE.read_text()


def type_text(holds):
    match holds:
        case schema.Scalar(code, default):
            return NUMBERS[code] + (" (optional)" if default is None else "")
        case schema.String():
            return "string"
        case schema.Bytes():
            return "vector of bytes"
        case schema.Vector(code):
            return f"vector of {NUMBERS[code]}"
        case schema.Strings():
            return "vector of strings"
        case schema.Table(name):
            return name.removesuffix("Table")
        case schema.Tables(name):
            return f"vector of {name.removesuffix('Table')}"


@pytest.mark.parametrize("table", [name for name in schema.__all__ if name.endswith("Table") and name != "Table"])
def test_the_page_gives_every_field_of_every_table(table):
    section = TEXT.split(f"\n### {table.removesuffix('Table')}\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
    fields = schema.fields_of(getattr(schema, table))
    assert rows == [(str(field.slot), field.name, type_text(field.holds)) for field in fields]


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("PyTreeDef.kind", kinds_module.PyTreeDefKind),
        ("AbstractValue.kind", kinds_module.AbstractValueKind),
        ("AbstractValue.memory_space", kinds_module.MemorySpace),
        ("Sharding.kind", kinds_module.ShardingKind),
        ("AbstractMesh.axis_types", kinds_module.AxisType),
        ("DisabledSafetyCheck.kind", kinds_module.DisabledSafetyCheckKind),
    ],
)
def test_the_page_gives_every_kind(field, kind):
    assert f"| `{field}` | {', '.join(f'{int(item)} {item.name.lower()}' for item in kind)} |" in TEXT


def test_the_page_gives_every_dtype_and_the_trailer():
    assert "Dtypes: " + ", ".join(f"{number} {name}" for number, name in enumerate(kinds_module.DTYPES)) + "." in TEXT
    assert f"magic: `{MAGIC.hex(' ').upper()}`" in TEXT
    assert f"trailer format: {TRAILER_FORMAT} |" in TEXT
