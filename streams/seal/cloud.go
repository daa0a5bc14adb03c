//go:build cloud

package seal

// The clients of the clouds' key management services make the binary larger still.
import (
	_ "gocloud.dev/secrets/awskms"        // the scheme awskms
	_ "gocloud.dev/secrets/azurekeyvault" // the scheme azurekeyvault
	_ "gocloud.dev/secrets/gcpkms"        // the scheme gcpkms
)
