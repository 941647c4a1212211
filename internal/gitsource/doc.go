// Package gitsource yields what is indexed: the documents of a Git repository or
// of a plain folder, in the order of their paths' bytes.
//
// Fetcher copies the wanted branches of a remote repository into a local bare
// one with the git command line, which it runs without any of the user's or the
// machine's configuration, with connections only to addresses that the policy
// (package origin) allows, within limits of time and size, and as a process
// group that is killed as a whole. Repository and Folder yield documents.
//
// It needs git 2.32 or later, and ssh and a shell for ssh and for credentials.
//
// Names in Git are bytes, not text: a path may hold newlines and invalid UTF-8,
// and comes out exactly as it went in.
package gitsource
