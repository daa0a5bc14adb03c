package settings

import "testing"

// TestOrigins: what a browser may send is taken, also patterns and the schemes of applications. A node starts with any other text.
func TestOrigins(t *testing.T) {
	for origin, doubtful := range map[string]bool{
		"*": false, "null": false, "https://app.example": false, "http://127.0.0.1:3000": false, "http://localhost:*": false,
		"https://*.example": false, "https://app-?.example": false, "capacitor://localhost": false, "chrome-extension://abcdef": false,
		"https://[::1]:8443": false, "https://app.example,https://b.example": false,
		"app.example": true, "https://app.example/": true, "https://app.example/page": true, "https://App.example": true, "a b": true,
		"https://u@app.example": true, "https://": true,
	} {
		var s Settings
		s.HTTP.Origins = origin
		if got := len(s.Doubtful()) > 0; got != doubtful {
			t.Errorf("%s: doubtful is %v", origin, got)
		}
	}
}
