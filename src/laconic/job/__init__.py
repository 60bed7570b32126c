"""The main job from files: a table or a scan in; model file, report and predictions out."""
