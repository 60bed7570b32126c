"""The main job: candidates compared on held-out rows, blends, the model that is kept."""
