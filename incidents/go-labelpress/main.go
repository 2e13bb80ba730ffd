package main

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type Label struct {
	Parcel string
	Lines  []string
}

type Press struct {
	jobs    chan Label
	tool    string
	printed int
	run     string
}

func (p *Press) compose(l Label) string {
	return strings.Join(append([]string{l.Parcel}, l.Lines...), "\n")
}

func (p *Press) render(l Label) ([]byte, error) {
	cmd := exec.Command("/bin/bash", p.tool, l.Parcel)
	cmd.Stdin = strings.NewReader(p.compose(l))
	var picture bytes.Buffer
	cmd.Stdout = &picture
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return picture.Bytes(), nil
}

func (p *Press) store(l Label, picture []byte) error {
	return os.WriteFile(filepath.Join(p.run, "label-"+l.Parcel), picture, 0o644)
}

func (p *Press) work() {
	for l := range p.jobs {
		picture, err := p.render(l)
		if err != nil {
			log.Print("render: ", err)
			continue
		}
		if err := p.store(l, picture); err != nil {
			log.Print("store: ", err)
			continue
		}
		p.printed++
		os.WriteFile(filepath.Join(p.run, "printed"), []byte(fmt.Sprintln(p.printed)), 0o644)
	}
}

func (p *Press) order(w http.ResponseWriter, r *http.Request) {
	l := Label{Parcel: r.URL.Query().Get("parcel"), Lines: []string{"Am Wall 3", "Bremen"}}
	select {
	case p.jobs <- l:
		w.WriteHeader(http.StatusAccepted)
	default:
		http.Error(w, "too many labels", http.StatusServiceUnavailable)
	}
}

func (p *Press) feed() {
	for n := 1; ; n++ {
		p.jobs <- Label{Parcel: fmt.Sprintf("P%04d", n), Lines: []string{"Hafenstr. 8", "Kiel"}}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	p := &Press{jobs: make(chan Label, 8), tool: os.Args[1], run: os.Getenv("RUN")}
	go p.work()
	go p.feed()
	http.HandleFunc("/order", p.order)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], nil))
}
