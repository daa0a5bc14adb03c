// Package archive keeps the log of a journal in a bucket, in a small fraction of the topic's bytes, so that the topic can be
// trimmed and restored.
//
// An archive consists of ranges of 65,536 valid records. A range has an object, which holds all records of the topic from the
// end of the range before, with those that readers skip, and a manifest. The manifest names the object, its hash, the hashes
// of the records at both ends, and the hash of the manifest before, so the newest manifest stands for the whole archive. A
// manifest is created if absent and never replaced: of two writers one creates it, and the other checks that it has archived
// the same records. Records after the last full range may be kept in a tail object, which is replaced as it grows. The topic is
// never trimmed because of a tail.
//
// Objects are sealed with the venue's master key, and manifests carry a MAC under it. Nothing here decodes events, so any build
// can read any archive. README.md of streams has the exact form.
//
// Start with Writer and Reader. object.go has the form of an object, manifest.go that of a manifest.
package archive
