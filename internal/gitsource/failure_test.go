package gitsource

import (
	"errors"
	"testing"
)

// TestFullDisk has what git says when it finds the disk full at different steps. None of it is the repository's fault.
func TestFullDisk(t *testing.T) {
	for _, said := range []string{
		"fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output\n",
		"fatal: sha1 file '/m.git/objects/pack/tmp_idx_sn0uHc' write error. Out of diskspace\nfatal: fetch-pack: invalid index-pack output\n",
		"error: cannot update ref 'refs/heads/main': couldn't write '/m.git/refs/heads/main.lock'\n" +
			"From /r\n ! [new branch]      main       -> main  (unable to update local ref)\n",
		"fatal: Unable to create '/m.git/shallow.lock': Disk quota exceeded\n",
	} {
		wantFailure(t, explain(said, errors.New("exit status 1")), NoSpace, "disk is full")
	}
}

// TestUnreadableConfiguration: a repository whose configuration git cannot read is no host that cannot be reached.
func TestUnreadableConfiguration(t *testing.T) {
	for _, said := range []string{
		"fatal: bad config line 1 in file /etc/passwd\nfatal: expected flush after capabilities\n",
		"fatal: bad config line 3 in file ./config\nfatal: Could not read from remote repository.\n",
		"fatal: bad numeric config value 'x' for 'pack.windowmemory' in file config: invalid unit\n",
	} {
		wantFailure(t, explain(said, errors.New("exit status 128")), Refused, "configuration")
	}
}
