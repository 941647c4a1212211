package bucket

import (
	"fmt"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// credentialsFile takes S3 keys from a file, and again when the file changes. While a changed file
// cannot be read, requests fail with its error. minio's Credentials calls it under a lock.
type credentialsFile struct {
	credentials.FileAWSCredentials

	read    time.Time // modification time of the file that was read
	checked time.Time
	stale   bool // the file had changed at the last check
}

// credentialsPoll is the least time between two checks whether the file has changed.
const credentialsPoll = time.Second

// Retrieve implements credentials.Provider.
func (f *credentialsFile) Retrieve() (credentials.Value, error) {
	return f.RetrieveWithCredContext(nil)
}

// RetrieveWithCredContext implements credentials.Provider.
func (f *credentialsFile) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	changed, err := f.changed()
	if err != nil {
		return credentials.Value{}, err
	}
	value, err := f.FileAWSCredentials.RetrieveWithCredContext(cc)
	if err != nil {
		// The parser's error has the line that it cannot read, which may be a secret.
		return credentials.Value{}, fmt.Errorf("%s: want the lines [default], aws_access_key_id = KEY and aws_secret_access_key = SECRET", f.Filename)
	}
	f.read, f.checked, f.stale = changed, time.Now(), false
	return value, nil
}

// IsExpired implements credentials.Provider. It is called more often than the keys are taken, so
// its answer stays true until they are.
func (f *credentialsFile) IsExpired() bool {
	if time.Since(f.checked) >= credentialsPoll {
		changed, err := f.changed()
		f.stale, f.checked = err == nil && !changed.Equal(f.read), time.Now()
	}
	return f.stale || f.FileAWSCredentials.IsExpired()
}

// changed is when the file last changed. It follows symbolic links, which Kubernetes
// replaces.
func (f *credentialsFile) changed() (time.Time, error) {
	info, err := os.Stat(f.Filename)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
