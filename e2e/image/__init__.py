"""The product's one image, built without Docker.

    python -m e2e.image build    prints the path of an OCI archive, and how large it is
    python -m e2e.image sbom     prints what is in it

The Dockerfile is for people with Docker, and it is the one description of the image: this builder reads the packages,
the steps, what each step may see, and the settings from the same places.
"""
