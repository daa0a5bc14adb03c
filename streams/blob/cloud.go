//go:build cloud

package blob

// The cloud drivers make the binary several times larger, so they need a build tag.
import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"cloud.google.com/go/storage"
	azureblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	transfer "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // scheme azblob
	_ "gocloud.dev/blob/gcsblob"   // scheme gs
	_ "gocloud.dev/blob/s3blob"    // scheme s3
	"google.golang.org/api/googleapi"
)

// applyLock puts a lock into the request that writes a blob.
func applyLock(as func(any) bool, l Lock) error {
	var upload *transfermanager.UploadObjectInput
	var writer *storage.Writer
	switch {
	case as(&upload):
		upload.ObjectLockMode = transfer.ObjectLockMode(strings.ToUpper(string(l.Mode)))
		upload.ObjectLockRetainUntilDate = &l.Until
		// S3 demands a checksum of an object with a lock, also where the URL of the bucket asks for none.
		upload.ChecksumAlgorithm = transfer.ChecksumAlgorithmCrc32
	case as(&writer):
		mode := "Unlocked"
		if l.Mode == Compliance {
			mode = "Locked"
		}
		writer.Retention = &storage.ObjectRetention{Mode: mode, RetainUntil: l.Until}
	default:
		return ErrNoLocks
	}
	return nil
}

// lockOf returns the lock in the attributes of a blob.
func lockOf(about *blob.Attributes) Lock {
	var inS3 s3.HeadObjectOutput
	var inGoogle storage.ObjectAttrs
	var inAzure azureblob.GetPropertiesResponse
	switch {
	case about.As(&inS3):
		if inS3.ObjectLockRetainUntilDate != nil {
			return Lock{*inS3.ObjectLockRetainUntilDate, Mode(strings.ToLower(string(inS3.ObjectLockMode)))}
		}
	case about.As(&inGoogle):
		return lockInGoogle(&inGoogle)
	case about.As(&inAzure):
		if inAzure.ImmutabilityPolicyExpiresOn != nil {
			l := Lock{*inAzure.ImmutabilityPolicyExpiresOn, Governance}
			if m := inAzure.ImmutabilityPolicyMode; m != nil && strings.EqualFold(string(*m), "locked") {
				l.Mode = Compliance
			}
			return l
		}
	}
	return Lock{}
}

// lockInGoogle returns the later of two retentions: that of the object, and that which the policy of the bucket demands.
func lockInGoogle(about *storage.ObjectAttrs) Lock {
	policy := Lock{Until: about.RetentionExpirationTime}
	r := about.Retention
	if r == nil || policy.Holds(r.RetainUntil) {
		return policy
	}
	if r.Mode == "Locked" {
		return Lock{r.RetainUntil, Compliance}
	}
	return Lock{r.RetainUntil, Governance}
}

// checkLocks is CheckLocks for a bucket of S3 or of Google.
func checkLocks(ctx context.Context, bucket *blob.Bucket, u *url.URL) error {
	var inS3 *s3.Client
	var inGoogle *storage.Client
	switch {
	case bucket.As(&inS3):
		return checkS3Locks(ctx, inS3, u.Host)
	case bucket.As(&inGoogle):
		about, err := inGoogle.Bucket(u.Host).Attrs(ctx)
		if err != nil {
			return fmt.Errorf("blob store: asking %s whether it can lock objects: %w", u.Redacted(), err)
		}
		if about.ObjectRetentionMode == "" {
			return fmt.Errorf("the bucket %s has no object retention, so %w", u.Host, ErrNoLocks)
		}
		return nil
	}
	return ErrNoLocks
}

func checkS3Locks(ctx context.Context, client *s3.Client, name string) error {
	about, err := client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: &name})
	var answer smithy.APIError
	switch {
	case errors.As(err, &answer) && answer.ErrorCode() == "ObjectLockConfigurationNotFoundError":
		return fmt.Errorf("the bucket %s has no Object Lock, so %w", name, ErrNoLocks)
	case err != nil:
		return fmt.Errorf("blob store: asking the bucket %s whether it can lock objects: %w", name, err)
	case about.ObjectLockConfiguration == nil || about.ObjectLockConfiguration.ObjectLockEnabled != types.ObjectLockEnabledEnabled:
		return fmt.Errorf("the bucket %s has no Object Lock, so %w", name, ErrNoLocks)
	}
	return nil
}

// refused is Refused for errors that the drivers report as something else.
func refused(err error) bool {
	var google *googleapi.Error
	if errors.As(err, &google) {
		return google.Code == http.StatusForbidden // which the driver reports as not found
	}
	return bloberror.HasCode(err, bloberror.BlobImmutableDueToPolicy, bloberror.AuthorizationPermissionMismatch)
}
