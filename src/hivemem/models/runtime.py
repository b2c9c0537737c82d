"""onnxruntime, silenced before it starts.

The official builds (1.32 is one) report their use to their maker over the network, and keep an identifier of
the machine in the user's cache folder, unless this variable is set before the library is loaded. Its function
`disable_telemetry_events` comes too late for the first event. So nothing else here imports the library.
"""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

__all__ = ["ort"]
