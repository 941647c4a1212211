package bucket

import "time"

// Impatient makes a bucket of S3 give up connections that receive nothing for that
// long.
func Impatient(b Bucket, stall time.Duration) { b.(*S3).stall = stall }
