package docstore

import (
	"bytes"
	"sort"

	"github.com/trawl-search/trawl/index/format"
)

// Repos returns the number of repos.
func (d *Docs) Repos() int { return int(d.info.repos) }

// RepoOf returns the repo of a document.
func (d *Docs) RepoOf(doc uint32) (int, error) {
	if err := d.checkDoc(doc); err != nil {
		return 0, err
	}
	list, err := d.repoDocs.List()
	if err != nil {
		return 0, err
	}
	repo := list.Last(uint64(doc))
	if repo < 0 || repo >= d.Repos() {
		return 0, d.repoDocs.Corruptf("document %d belongs to no repo", doc)
	}
	return repo, nil
}

// RepoDocs returns the documents of repo i: [first, first+n).
func (d *Docs) RepoDocs(i int) (first, n uint32, err error) {
	if i < 0 || i >= d.Repos() {
		return 0, 0, d.noRepo(i)
	}
	list, err := d.repoDocs.List()
	if err != nil {
		return 0, 0, err
	}
	from, to := list.At2(i)
	if to < from {
		return 0, 0, d.repoDocs.Corruptf("repo %d has the documents from %d to %d", i, from, to)
	}
	return uint32(from), uint32(to - from), nil
}

// Repo returns repo i. It allocates the strings.
func (d *Docs) Repo(i int) (Repo, error) {
	dec, err := d.repoDecoder(i)
	if err != nil {
		return Repo{}, err
	}
	head := decodeRepoHead(&dec)
	r := decodeRepo(&dec, head)
	if err := dec.End(); err != nil {
		return Repo{}, err
	}
	if r.Rank, err = d.RepoRank(i); err != nil {
		return Repo{}, err
	}
	r.FirstDoc, r.Docs, err = d.RepoDocs(i)
	return r, err
}

// RepoRank returns the rank of repo i.
func (d *Docs) RepoRank(i int) (uint8, error) {
	if i < 0 || i >= d.Repos() {
		return 0, d.noRepo(i)
	}
	if d.mostRank == 0 {
		return 0, nil
	}
	rank, err := d.repoRanks.number(uint32(i), MaxRank+1)
	return uint8(rank), err
}

// Ranks returns the lowest and the highest rank of all repos.
func (d *Docs) Ranks() (least, most uint8) { return d.leastRank, d.mostRank }

// RepoName returns the name of repo i.
func (d *Docs) RepoName(i int) (string, error) {
	dec, err := d.repoDecoder(i)
	if err != nil {
		return "", err
	}
	decodeRepoHead(&dec)
	name := dec.String()
	return name, dec.Err()
}

// FindRepo finds a repo by its name.
func (d *Docs) FindRepo(name string) (i int, ok bool, err error) {
	if i, err = d.SeekRepo(name); err != nil || i == d.Repos() {
		return 0, false, err
	}
	have, err := d.RepoName(i)
	return i, err == nil && have == name, err
}

// SeekRepo is the first repo whose name is not before a name, or the number of repos.
func (d *Docs) SeekRepo(name string) (i int, err error) {
	i = sort.Search(d.Repos(), func(i int) bool {
		have := ""
		if err == nil {
			have, err = d.RepoName(i)
		}
		return err != nil || have >= name
	})
	return i, err
}

// FindPath finds the first document with a path in repo i. A path may have
// several documents, which are adjacent, on different branches.
func (d *Docs) FindPath(i int, path []byte) (doc uint32, ok bool, err error) {
	doc, end, err := d.SeekPath(i, path)
	if err != nil || doc == end {
		return 0, false, err
	}
	have, err := d.AppendPath(nil, doc)
	return doc, err == nil && bytes.Equal(have, path), err
}

// SeekPath returns the first document of repo i whose path is not before path, and the end of the
// repo's documents, which are in the order of their paths.
func (d *Docs) SeekPath(i int, path []byte) (doc, end uint32, err error) {
	from, n, err := d.RepoDocs(i)
	if err != nil {
		return 0, 0, err
	}
	var have []byte
	at := sort.Search(int(n), func(k int) bool {
		if err == nil {
			have, err = d.AppendPath(have[:0], from+uint32(k))
		}
		return err != nil || bytes.Compare(have, path) >= 0
	})
	return from + uint32(at), from + n, err
}

func (d *Docs) repoHead(i int) (repoHead, error) {
	dec, err := d.repoDecoder(i)
	if err != nil {
		return repoHead{}, err
	}
	head := decodeRepoHead(&dec)
	return head, dec.Err()
}

func (d *Docs) repoDecoder(i int) (format.Decoder, error) {
	if i < 0 || i >= d.Repos() {
		return format.Decoder{}, d.noRepo(i)
	}
	list, err := d.repoOffsets.List()
	if err != nil {
		return format.Decoder{}, err
	}
	from, to := list.At2(i)
	return d.repoRecords.DecoderAt(int64(from), int64(to)-int64(from))
}

func (d *Docs) noRepo(i int) error {
	return d.repoOffsets.Corruptf("no repo %d: there are %d", i, d.info.repos)
}
