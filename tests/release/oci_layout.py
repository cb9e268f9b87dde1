# SPDX-License-Identifier: Apache-2.0
"""Reads an OCI layout in a tar and checks that every part is what its digest says."""

import hashlib
import json
import tarfile


class Layout:
    def __init__(self, path):
        with tarfile.open(path) as file:
            self.files = {one.name: file.extractfile(one).read() for one in file if one.isfile()}
        if json.loads(self.files["oci-layout"]) != {"imageLayoutVersion": "1.0.0"}:
            raise AssertionError(f"{path}: oci-layout has another version")
        self.index = json.loads(self.files["index.json"])
        self.asked = set()

    def blob(self, descriptor):
        kind, digest = descriptor["digest"].split(":")
        data = self.files[f"blobs/{kind}/{digest}"]
        if hashlib.sha256(data).hexdigest() != digest or len(data) != descriptor["size"]:
            raise AssertionError(f"{digest} is not what its descriptor says")
        self.asked.add(f"blobs/{kind}/{digest}")
        return data

    def json(self, descriptor):
        return json.loads(self.blob(descriptor))

    def unread(self):
        """Parts that nothing leads to."""
        return {name for name in self.files if name.startswith("blobs/")} - self.asked
