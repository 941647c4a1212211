package docstore

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// check checks a document against the rules of DocsWriter.AddDocument.
func (d *DocsWriter) check(doc *Document) error {
	switch order := bytes.Compare(doc.Path, d.lastPath); {
	case !d.hasRepo:
		return fmt.Errorf("it belongs to no repo")
	case len(d.paths) == maxUnits:
		return fmt.Errorf("a shard holds at most %d documents", maxUnits)
	case len(doc.Path) == 0 || len(doc.Path) > MaxPath:
		return fmt.Errorf("its path has %d bytes, 1 to %d are possible", len(doc.Path), MaxPath)
	case order < 0:
		return fmt.Errorf("it comes after %q", d.lastPath)
	case order == 0 && doc.Blob == d.lastBlob:
		return fmt.Errorf("it comes twice")
	}
	if err := d.checkOID(doc); err != nil {
		return err
	}
	return d.checkLabels(doc)
}

func (d *DocsWriter) checkOID(doc *Document) error {
	n, blobs := len(doc.OID), uint32(len(d.firstDocs))
	switch {
	case n != 0 && n != 20 && n != 32:
		return fmt.Errorf("its object id has %d bytes", n)
	case d.repoOIDs >= 0 && n != d.repoOIDs:
		return fmt.Errorf("its object id has %d bytes, others of the repo have %d", n, d.repoOIDs)
	case doc.Blob > blobs:
		return fmt.Errorf("it has blob %d, the next new one is %d", doc.Blob, blobs)
	case doc.Blob < blobs && !d.sameOID(doc.Blob, doc.OID):
		return fmt.Errorf("blob %d has two object ids", doc.Blob)
	}
	return nil
}

func (d *DocsWriter) sameOID(blob uint32, oid []byte) bool {
	have := d.oids[int(blob)*d.oidWidth:][:d.oidWidth]
	return len(oid) <= len(have) && bytes.Equal(have[:len(oid)], oid) &&
		!slices.ContainsFunc(have[len(oid):], func(b byte) bool { return b != 0 })
}

func (d *DocsWriter) checkLabels(doc *Document) error {
	if len(doc.Branches) == 0 {
		return fmt.Errorf("it is on no branch")
	}
	for i, b := range doc.Branches {
		if i > 0 && b <= doc.Branches[i-1] {
			return fmt.Errorf("branch %d follows %d", b, doc.Branches[i-1])
		}
		if b >= uint32(len(d.repo.Branches)) {
			return fmt.Errorf("it is on branch %d of %d", b, len(d.repo.Branches))
		}
	}
	if !utf8.ValidString(doc.Language) {
		return fmt.Errorf("its language %q is not UTF-8", doc.Language)
	}
	if _, ok := d.languages[doc.Language]; !ok && len(d.languages) == maxLanguages {
		return fmt.Errorf("a shard holds at most %d languages", maxLanguages)
	}
	return nil
}
