package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Gateway is one listener configuration seen by the operator.
type Gateway struct {
	Namespace string
	Name      string
	Class     string
	Listeners []string
	Version   int
}

// Key is the store key of a gateway.
func (g Gateway) Key() string { return g.Namespace + "/" + g.Name }

// ObjectStore keeps the last list obtained from the API server.
type ObjectStore struct {
	mu      sync.RWMutex
	objects map[string]Gateway
	gen     int
}

// NewObjectStore returns an empty store.
func NewObjectStore() *ObjectStore {
	return &ObjectStore{objects: make(map[string]Gateway)}
}

// Reset replaces the content of the store.
func (s *ObjectStore) Reset(list []Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = make(map[string]Gateway, len(list))
	for _, g := range list {
		s.objects[g.Key()] = g
	}
	s.gen++
}

// Len tells how many objects are stored.
func (s *ObjectStore) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Snapshot returns the objects of one class in a stable order.
func (s *ObjectStore) Snapshot(class string) []Gateway {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := make([]string, 0, 64)
	for k, g := range s.objects {
		if g.Class == class {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	out := make([]Gateway, 0, s.Len())
	for _, k := range keys {
		out = append(out, s.objects[k])
	}
	return out
}

// Reconciler refreshes the store from the API server.
type Reconciler struct {
	store *ObjectStore
	round int
}

func (r *Reconciler) list() []Gateway {
	r.round++
	res := make([]Gateway, 0, 900)
	for i := 0; i < 900; i++ {
		res = append(res, Gateway{
			Namespace: fmt.Sprintf("team-%02d", i%17),
			Name:      fmt.Sprintf("udp-gw-%03d", i),
			Class:     []string{"edge", "internal"}[i%2],
			Listeners: []string{"udp:3478", "tls:5349"},
			Version:   r.round,
		})
	}
	return res
}

// Run reconciles until the process ends.
func (r *Reconciler) Run(every time.Duration) {
	for {
		r.store.Reset(r.list())
		time.Sleep(every)
	}
}

// Renderer writes the dataplane configuration.
type Renderer struct {
	store *ObjectStore
	dir   string
	done  atomic.Int64
}

func (r *Renderer) render(class string) error {
	var b strings.Builder
	for _, g := range r.store.Snapshot(class) {
		fmt.Fprintf(&b, "gateway %s v%d\n", g.Key(), g.Version)
		for _, l := range g.Listeners {
			fmt.Fprintf(&b, "  listen %s\n", l)
		}
	}
	tmp := filepath.Join(r.dir, class+".conf.tmp")
	if err := os.WriteFile(tmp, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(r.dir, class+".conf"))
}

// Run renders all classes again and again.
func (r *Renderer) Run(every time.Duration) {
	for {
		for _, class := range []string{"edge", "internal"} {
			if err := r.render(class); err != nil {
				log.Printf("render %s: %v", class, err)
			}
		}
		r.done.Add(1)
		time.Sleep(every)
	}
}

func main() {
	dir := os.Getenv("RUN")
	store := NewObjectStore()
	rec := &Reconciler{store: store}
	ren := &Renderer{store: store, dir: dir}
	go rec.Run(7 * time.Millisecond)
	go ren.Run(9 * time.Millisecond)
	for range time.Tick(500 * time.Millisecond) {
		line := fmt.Sprintf("renders=%d\n", ren.done.Load())
		_ = os.WriteFile(filepath.Join(dir, "progress"), []byte(line), 0o644)
	}
}
