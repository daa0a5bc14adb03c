//go:build cloud

package seal

// The clients of the cloud key management services make the binary even larger.
import (
	_ "gocloud.dev/secrets/awskms"        // scheme awskms
	_ "gocloud.dev/secrets/azurekeyvault" // scheme azurekeyvault
	_ "gocloud.dev/secrets/gcpkms"        // scheme gcpkms
)
