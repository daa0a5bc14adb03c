//go:build cloud

package blob

// The cloud drivers make the binary several times larger, so they need a build tag.
import (
	_ "gocloud.dev/blob/azureblob" // scheme azblob
	_ "gocloud.dev/blob/gcsblob"   // scheme gs
	_ "gocloud.dev/blob/s3blob"    // scheme s3
)
