"""Zip files that are byte for byte the same for the same content."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Mapping


def zipped(files: Mapping[str, str | bytes], programs: Collection[str] = ()) -> bytes:
    """A zip with these files, of which some may be executed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(info, content)
    return out.getvalue()
