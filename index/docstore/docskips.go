package docstore

// Skip returns why the content of a document is not searchable.
func (d *Docs) Skip(doc uint32) (SkipReason, error) {
	item, err := d.skipItem(doc)
	if err != nil || item == nil {
		return NotSkipped, err
	}
	return SkipReason(item[0]), nil
}

// Size returns the size of a document in bytes; if it was skipped, the size at
// its source.
func (d *Docs) Size(doc uint32) (uint64, error) {
	item, err := d.skipItem(doc)
	if err != nil {
		return 0, err
	}
	if item != nil {
		return le.Uint64(item[1:]), nil
	}
	blob, err := d.Blob(doc)
	if err != nil {
		return 0, err
	}
	n, err := blobLen(&d.blobStarts, blob)
	return uint64(n), err
}

// skipItem returns the record of a skipped document; nil for others.
func (d *Docs) skipItem(doc uint32) ([]byte, error) {
	if err := d.checkDoc(doc); err != nil || d.info.skips == 0 {
		return nil, err
	}
	list, err := d.skipDocs.List()
	if err != nil {
		return nil, err
	}
	i, skipped := list.Find(uint64(doc))
	if !skipped {
		return nil, nil
	}
	item, err := d.skips.item(uint32(i))
	if err == nil && SkipReason(item[0]) == NotSkipped {
		err = d.skips.section.Corruptf(int64(i)*skipSize, "document %d is skipped for no reason", doc)
	}
	return item, err
}
