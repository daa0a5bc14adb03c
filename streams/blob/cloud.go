//go:build cloud

package blob

// The drivers of the clouds make the binary several times as large, so they are in it only where they are asked for.
import (
	_ "gocloud.dev/blob/azureblob" // the scheme azblob
	_ "gocloud.dev/blob/gcsblob"   // the scheme gs
	_ "gocloud.dev/blob/s3blob"    // the scheme s3
)
