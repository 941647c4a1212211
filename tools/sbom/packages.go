package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// packages returns the packages listed in a dpkg status file.
func packages(path string) (list []cyclonedx.Component, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the Debian packages: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	fields := map[string]string{}
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ": "); ok && name != "" && name[0] != ' ' {
			fields[name] = value
		}
		if lines.Text() == "" && fields["Package"] != "" {
			list = append(list, debian(fields))
			fields = map[string]string{}
		}
	}
	if fields["Package"] != "" {
		list = append(list, debian(fields))
	}
	if len(list) == 0 {
		err = errors.New("there are no Debian packages in " + path)
	}
	return list, errors.Join(err, lines.Err())
}

func debian(fields map[string]string) cyclonedx.Component {
	name, version := fields["Package"], fields["Version"]
	return library(name, version, fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=bookworm",
		url.PathEscape(name), url.PathEscape(version), fields["Architecture"]))
}
