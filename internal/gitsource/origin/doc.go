// Package origin says where repos may come from: which clone URLs and folders a
// policy allows, and how repos and branches are called. It runs no program; only
// Policy.Resolve and Policy.AllowedAddress use the network, to look names up.
package origin
