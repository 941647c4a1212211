// Package gitsource yields the documents of a Git repository or of a plain folder, in
// the order of their paths' bytes. No other package runs git.
//
// A Fetcher copies branches of a remote repository into a local mirror with the git
// command line. Git runs without the user's and the machine's configuration, connects
// only to addresses that the policy (package origin) allows, within limits of time and
// size, and in a process group that is killed as a whole. Repository, Changes and
// Folder yield documents.
//
// The package needs git 2.32 or later. It needs ssh for ssh URLs, and a shell for ssh
// and for credentials.
//
// Names in Git are bytes, not text: a path may hold newlines and invalid UTF-8, and is
// passed on unchanged.
package gitsource
