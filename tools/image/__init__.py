"""The product's one image, built without Docker.

    python -m tools.image build    prints the path of an OCI archive, and its size
    python -m tools.image sbom     prints its bill of materials

The Dockerfile is the one description of the image: this builder reads it, and runs the same steps (docs/image.md).
"""
