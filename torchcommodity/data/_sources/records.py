"""What a table says of its symbols beside prices: unit, contract and provenance, as written by `write`."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace

from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance, drop_origin_findings

METADATA = b"torchcommodity"  # key in the metadata of an Arrow schema
Records = Mapping[str, Mapping[str, str]]  # symbol -> the fields of `Panel.sources`


def encode_records(panel: Panel) -> dict[bytes, bytes]:
    """The metadata of a schema: the records of a panel as JSON."""
    records = {record.pop("symbol"): record for record in panel.sources()}
    return {METADATA: json.dumps(records).encode()}


def decode_records(metadata: Mapping[bytes, bytes] | None) -> Records:
    """The records in the metadata of a schema; none if it has none, or was written by something else.

    >>> decode_records({b"torchcommodity": b'{"WTI": {"unit": "$/bbl"}}'}), decode_records({b"pandas": b"{}"})
    ({'WTI': {'unit': '$/bbl'}}, {})
    """
    try:
        records = json.loads((metadata or {}).get(METADATA, b"{}"))
    except ValueError:
        return {}
    is_valid = isinstance(records, dict) and all(isinstance(record, dict) for record in records.values())
    return {symbol: {k: str(v) for k, v in record.items()} for symbol, record in records.items()} if is_valid else {}


def apply_records(panel: Panel, records: Records) -> Panel:
    """The panel with units, contracts and provenance of its records; a symbol without a record is unchanged."""
    if not records:
        return panel
    units = [records.get(symbol, {}).get("unit", unit) for symbol, unit in zip(panel.symbols, panel.units)]
    provenance = [
        _provenance(record, records.get(symbol, {})) for symbol, record in zip(panel.symbols, panel.provenance)
    ]
    codes = [records.get(symbol, {}).get("contract") or code for symbol, code in zip(panel.symbols, panel.contracts)]
    findings = drop_origin_findings(panel.findings, provenance)
    return replace(panel, units=tuple(units), provenance=tuple(provenance), contracts=tuple(codes), findings=findings)


def _provenance(default: Provenance, record: Mapping[str, str]) -> Provenance:
    known = {field.name: record[field.name] for field in fields(Provenance) if field.name in record}
    return replace(default, **known)
