// Package origin holds the rules for clone URLs and names: which URLs and folders
// a policy allows, which names repos and branches may have, and which names a
// pattern matches. It runs no program. Only Policy.Resolve and
// Policy.AllowedAddress use the network, for DNS lookups.
package origin
