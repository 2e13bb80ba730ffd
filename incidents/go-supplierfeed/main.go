// supplierfeed keeps the shop's purchase prices in step with the supplier's API.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

type offer struct {
	SKU   string `json:"sku"`
	Cents int    `json:"cents"`
	Stock int    `json:"stock"`
}

type feed struct {
	base   string
	client *http.Client
	skus   chan string

	mu     sync.RWMutex
	offers map[string]offer

	updated, missing atomic.Int64
}

func newFeed(base string) *feed {
	tr := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		MaxConnsPerHost:     4, // the supplier's contract allows four
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
	}
	return &feed{
		base:   base,
		client: &http.Client{Transport: tr},
		skus:   make(chan string, 64),
		offers: make(map[string]offer),
	}
}

// fetchOffer asks the supplier for one article.
func (f *feed) fetchOffer(sku string) (*offer, error) {
	req, err := http.NewRequest(http.MethodGet, f.base+"/v2/offers/"+sku, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("offer %s: %w", sku, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		f.missing.Add(1)
		return nil, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("offer %s: %s", sku, resp.Status)
	}
	var o offer
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&o); err != nil {
		return nil, err
	}
	io.Copy(io.Discard, resp.Body)
	return &o, nil
}

func (f *feed) store(o *offer) {
	f.mu.Lock()
	f.offers[o.SKU] = *o
	f.mu.Unlock()
	f.updated.Add(1)
}

func (f *feed) refresher(n int) {
	for sku := range f.skus {
		o, err := f.fetchOffer(sku)
		if err != nil {
			log.Printf("refresher %d: %v", n, err)
			continue
		}
		if o != nil {
			f.store(o)
		}
	}
}

// schedule walks the catalogue for ever, one article every 60 ms.
func (f *feed) schedule() {
	t := time.NewTicker(60 * time.Millisecond)
	defer t.Stop()
	for i := 0; ; i++ {
		<-t.C
		select {
		case f.skus <- fmt.Sprintf("AR-%04d", i%180):
		default:
		}
	}
}

func (f *feed) report(path string) {
	for range time.Tick(2 * time.Second) {
		f.mu.RLock()
		n := len(f.offers)
		f.mu.RUnlock()
		line := fmt.Sprintf("offers=%d updated=%d missing=%d queued=%d\n", n, f.updated.Load(), f.missing.Load(), len(f.skus))
		if err := os.WriteFile(path, []byte(line), 0o644); err != nil {
			log.Print(err)
		}
	}
}

func (f *feed) serveStatus(sock string) error {
	l, err := net.Listen("unix", sock)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /offers", func(w http.ResponseWriter, r *http.Request) {
		f.mu.RLock()
		defer f.mu.RUnlock()
		json.NewEncoder(w).Encode(f.offers)
	})
	return http.Serve(l, mux)
}

func main() {
	run := os.Getenv("RUN")
	f := newFeed(os.Getenv("SUPPLIER_URL"))
	for n := 1; n <= 6; n++ {
		go f.refresher(n)
	}
	go f.schedule()
	go f.report(filepath.Join(run, "supplierfeed.status"))
	log.Fatal(f.serveStatus(filepath.Join(run, "supplierfeed.sock")))
}
