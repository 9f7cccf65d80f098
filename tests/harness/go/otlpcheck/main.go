// otlpcheck FILE: an OTLP request with profiles (.json: its JSON) through the official decoder. Says as JSON what is
// in it; exit 1 with a sentence when an index leads nowhere, for the decoder does not look.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

type profile struct {
	Resource   map[string]any              `json:"resource"`
	Scope      string                      `json:"scope"`
	Type       string                      `json:"type"`
	Unit       string                      `json:"unit"`
	Attributes map[string]any              `json:"attributes"`
	Total      int64                       `json:"total"`
	Samples    int                         `json:"samples"`
	Stacks     map[string]int64            `json:"stacks"`
	Threads    map[string]int64            `json:"threads"`
	Links      map[string]map[string]int64 `json:"links"`
}

type dictionary struct{ pprofile.ProfilesDictionary }

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "otlpcheck: "+format+"\n", args...)
	os.Exit(1)
}

func in(what string, index int32, n int) int {
	if index < 0 || int(index) >= n {
		fail("%s %d of %d", what, index, n)
	}
	return int(index)
}

func (d dictionary) text(index int32) string {
	return d.StringTable().At(in("string", index, d.StringTable().Len()))
}

func (d dictionary) attributes(indices []int32) map[string]any {
	found := map[string]any{}
	for _, i := range indices {
		if i == 0 {
			fail("an attribute that is the empty one")
		}
		a := d.AttributeTable().At(in("attribute", i, d.AttributeTable().Len()))
		key := d.text(a.KeyStrindex())
		d.text(a.UnitStrindex())
		if _, twice := found[key]; twice {
			fail("attribute %s twice", key)
		}
		found[key] = a.Value().AsRaw()
	}
	return found
}

// root first
func (d dictionary) stack(index int32) string {
	names := []string{}
	locations := d.StackTable().At(in("stack", index, d.StackTable().Len())).LocationIndices()
	for i := locations.Len() - 1; i >= 0; i-- {
		l := d.LocationTable().At(in("location", locations.At(i), d.LocationTable().Len()))
		m := d.MappingTable().At(in("mapping", l.MappingIndex(), d.MappingTable().Len()))
		d.text(m.FilenameStrindex())
		d.attributes(l.AttributeIndices().AsRaw())
		for n := l.Lines().Len() - 1; n >= 0; n-- {
			f := d.FunctionTable().At(in("function", l.Lines().At(n).FunctionIndex(), d.FunctionTable().Len()))
			d.text(f.SystemNameStrindex())
			d.text(f.FilenameStrindex())
			names = append(names, d.text(f.NameStrindex()))
		}
	}
	return strings.Join(names, ";")
}

// The first entry of each table is empty, and none is there twice.
func (d dictionary) check() {
	if d.StringTable().Len() == 0 || d.StringTable().At(0) != "" {
		fail("the first string is not empty")
	}
	known := map[string]bool{}
	for _, s := range d.StringTable().AsRaw() {
		if known[s] {
			fail("string %q twice", s)
		}
		known[s] = true
	}
	for what, n := range map[string]int{"stack": d.StackTable().Len(), "location": d.LocationTable().Len(),
		"function": d.FunctionTable().Len(), "mapping": d.MappingTable().Len(), "link": d.LinkTable().Len(),
		"attribute": d.AttributeTable().Len()} {
		if n == 0 {
			fail("no %s in the table, not even the empty one", what)
		}
	}
	if d.StackTable().At(0).LocationIndices().Len() != 0 {
		fail("the first stack is not empty")
	}
	links := map[string]bool{}
	for _, l := range d.LinkTable().All() {
		link := l.TraceID().String() + l.SpanID().String()
		if links[link] {
			fail("link %s twice", link)
		}
		links[link] = true
	}
	if !d.LinkTable().At(0).TraceID().IsEmpty() || !d.LinkTable().At(0).SpanID().IsEmpty() {
		fail("the first link is not empty")
	}
}

func (d dictionary) profile(p pprofile.Profile) profile {
	out := profile{Type: d.text(p.SampleType().TypeStrindex()), Unit: d.text(p.SampleType().UnitStrindex()),
		Attributes: d.attributes(p.AttributeIndices().AsRaw()), Stacks: map[string]int64{}, Threads: map[string]int64{},
		Links: map[string]map[string]int64{}}
	if d.text(p.PeriodType().TypeStrindex()) == "" || p.Period() <= 0 {
		fail("no period")
	}
	known := map[string]bool{}
	for _, s := range p.Samples().All() {
		if s.Values().Len() != 1 || s.StackIndex() == 0 {
			fail("a sample without its value or stack")
		}
		l := d.LinkTable().At(in("link", s.LinkIndex(), d.LinkTable().Len()))
		link := l.TraceID().String() + "/" + l.SpanID().String()
		if (s.LinkIndex() == 0) != (link == "/") {
			fail("link %d is %s", s.LinkIndex(), link)
		}
		attributes := d.attributes(s.AttributeIndices().AsRaw())
		identity := fmt.Sprint(s.StackIndex(), attributes, link)
		if known[identity] {
			fail("sample %s twice", identity)
		}
		known[identity] = true
		out.Total += s.Values().At(0)
		stack := d.stack(s.StackIndex())
		out.Stacks[stack] += s.Values().At(0)
		if out.Links[link] == nil {
			out.Links[link] = map[string]int64{}
		}
		out.Links[link][stack] += s.Values().At(0)
		out.Threads[fmt.Sprint(attributes["thread.name"])] += s.Values().At(0)
		out.Samples++
	}
	return out
}

func main() {
	bytes, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail("%v", err)
	}
	request := pprofileotlp.NewExportRequest()
	if strings.HasSuffix(os.Args[1], ".json") {
		err = request.UnmarshalJSON(bytes)
	} else {
		err = request.UnmarshalProto(bytes)
	}
	if err != nil {
		fail("%v", err)
	}
	d := dictionary{request.Profiles().Dictionary()}
	d.check()
	profiles := []profile{}
	for _, r := range request.Profiles().ResourceProfiles().All() {
		for _, s := range r.ScopeProfiles().All() {
			for _, p := range s.Profiles().All() {
				out := d.profile(p)
				out.Resource = r.Resource().Attributes().AsRaw()
				out.Scope = s.Scope().Name()
				profiles = append(profiles, out)
			}
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(profiles)
}
