// edgeauth answers the reverse proxy's forward-auth questions and writes an audit trail to stdout.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

type grant struct {
	subject string
	until   time.Time
}

type authority struct {
	key   []byte
	trail *log.Logger

	mu    sync.Mutex
	cache map[string]grant
}

type auditRecord struct {
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
	Verdict string    `json:"verdict"`
	URI     string    `json:"uri"`
	Agent   string    `json:"agent"`
	Cookies string    `json:"cookies"`
}

var errBadToken = errors.New("bad token")

func newAuthority(key string) *authority {
	return &authority{key: []byte(key), trail: log.New(os.Stdout, "", 0), cache: map[string]grant{}}
}

// verify checks a token of the form subject.signature; good ones are remembered for a minute.
func (a *authority) verify(token string) (string, error) {
	a.mu.Lock()
	g, ok := a.cache[token]
	a.mu.Unlock()
	if ok && time.Now().Before(g.until) {
		return g.subject, nil
	}
	subject, sig, ok := strings.Cut(token, ".")
	if !ok {
		return "", errBadToken
	}
	m := hmac.New(sha256.New, a.key)
	m.Write([]byte(subject))
	if !hmac.Equal([]byte(hex.EncodeToString(m.Sum(nil))), []byte(sig)) {
		return subject, errBadToken
	}
	a.mu.Lock()
	a.cache[token] = grant{subject, time.Now().Add(time.Minute)}
	a.mu.Unlock()
	return subject, nil
}

// audit writes one record of the trail.
func (a *authority) audit(r *http.Request, subject, verdict string) {
	b, err := json.Marshal(auditRecord{
		At: time.Now(), Subject: subject, Verdict: verdict,
		URI:     r.Header.Get("X-Forwarded-Uri"),
		Agent:   r.UserAgent(),
		Cookies: r.Header.Get("Cookie"),
	})
	if err != nil {
		return
	}
	a.trail.Print(string(b))
}

func (a *authority) forwardAuth(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	subject, err := a.verify(token)
	if err != nil {
		a.audit(r, subject, "denied")
		http.Error(w, "denied", http.StatusUnauthorized)
		return
	}
	a.audit(r, subject, "granted")
	w.Header().Set("X-Auth-Subject", subject)
	w.WriteHeader(http.StatusNoContent)
}

func (a *authority) forget() {
	for range time.Tick(10 * time.Second) {
		a.mu.Lock()
		for t, g := range a.cache {
			if time.Now().After(g.until) {
				delete(a.cache, t)
			}
		}
		a.mu.Unlock()
	}
}

func main() {
	a := newAuthority(os.Getenv("EDGEAUTH_KEY"))
	l, err := net.Listen("unix", filepath.Join(os.Getenv("RUN"), "edgeauth.sock"))
	if err != nil {
		log.Fatal(err)
	}
	go a.forget()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth", a.forwardAuth)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("ok\n")) })
	log.Fatal((&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}).Serve(l))
}
