package searchapi

import "path"

// TreePath is a path as a Git tree has it, without the /, . and .. that people and programs write. "" is the root.
func TreePath(p []byte) []byte { return []byte(path.Clean("/" + string(p)))[1:] }
