package base

// WithSync has Keep sync the folders by a function of the test's.
func (f Folder) WithSync(sync func(dir string) error) Folder {
	f.sync = sync
	return f
}
