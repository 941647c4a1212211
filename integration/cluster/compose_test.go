package cluster

import (
	"os"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go/wait"
	"go.yaml.in/yaml/v3"
)

// TestComposeFile starts the container of compose.yaml as the file says, with the user of its image, and indexes and searches in it.
// The data is there after a restart.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image, Restart          string
			Command, Ports, Volumes []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	service := file.Services["trawl"]
	if len(file.Services) != 1 || !strings.Contains(service.Image, "trawl-indexer") {
		t.Fatalf("services %v", file.Services)
	}
	c := newNetwork(t)
	s := spec{name: "router", image: c.images.Indexer, args: service.Command, asImage: true, fixed: true, ready: wait.ForHTTP("/readyz").WithPort("7431/tcp")}
	for _, port := range service.Ports {
		local, ok := strings.CutPrefix(port, "127.0.0.1:")
		_, inside, _ := strings.Cut(local, ":")
		if s.ports = append(s.ports, inside+"/tcp"); !ok {
			t.Errorf("%s is open to other machines", port)
		}
	}
	for _, volume := range service.Volumes {
		name, path, _ := strings.Cut(volume, ":")
		if s.volumes = append(s.volumes, path); file.Volumes[name] == nil {
			t.Errorf("there is no volume %s", name)
		}
	}
	n, err := c.start(t.Context(), s)
	c.must(err)
	n.run(t, "sh", "-c", "cd /tmp && git init -q repo && cd repo && echo heron > bird && git add . && git -c user.name=a -c user.email=a@example.org commit -qm first")
	n.run(t, "/trawl", "index", "/tmp/repo")
	search := func() {
		t.Helper()
		if got := n.run(t, "/trawl", "search", "heron"); !strings.Contains(got, "bird:1:heron") {
			t.Errorf("found %q", got)
		}
	}
	search()
	n.stop(t)
	n.restart(t)
	n.ready(t)
	search()
}
