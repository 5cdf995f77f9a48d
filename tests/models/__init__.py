"""The models of docs/models, checked by TLC."""
