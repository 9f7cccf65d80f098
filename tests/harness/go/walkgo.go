// A Go runtime in the JVM: threads of its own, handlers of its own for SIGSEGV and friends, SIGURG to
// itself, stacks that move. Every function's result is known to its caller, WalkGo.java.
package main

// #include <stdint.h>
import "C"

import (
	"hash/crc32"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"time"
	"unsafe"
)

type node struct {
	next  *node
	value int64
}

// Implicit null checks as Go does them: SIGSEGV becomes a panic.
func read(n *node) (value int64, caught bool) {
	defer func() {
		if recover() != nil {
			caught = true
		}
	}()
	return n.value, false
}

//export Java_WalkGo_faults
func Java_WalkGo_faults(env, class unsafe.Pointer, rounds C.int64_t) C.int64_t {
	good, caught := &node{value: 1}, int64(0)
	for i := int64(0); i < int64(rounds); i++ {
		n := good
		if i%7 == 0 {
			n = nil
		}
		if _, c := read(n); c {
			caught++
		}
	}
	return C.int64_t(caught)
}

//go:noinline
func deep(depth int64) int64 {
	var pad [16]int64
	pad[depth&15] = depth
	if depth == 0 {
		return 0
	}
	return deep(depth-1) + pad[depth&15] - depth + 1
}

// A goroutine's stack that grows, and is copied while it does.
//
//export Java_WalkGo_recursion
func Java_WalkGo_recursion(env, class unsafe.Pointer, depth C.int64_t) C.int64_t {
	done := make(chan int64)
	go func() { done <- deep(int64(depth)) }()
	return C.int64_t(<-done + deep(int64(depth)/10))
}

// Threads of Go's own at work, also in loops that only a signal can interrupt, and its collector.
//
//export Java_WalkGo_crowd
func Java_WalkGo_crowd(env, class unsafe.Pointer, workers C.int64_t) C.int64_t {
	var wait sync.WaitGroup
	var lock sync.Mutex
	sum := int64(0)
	for w := int64(0); w < int64(workers); w++ {
		wait.Add(1)
		go func(w int64) {
			defer wait.Done()
			var x, crc int64
			for i := int64(0); i < 300000; i++ {
				x += i ^ w
			}
			words := make([]string, 0, 200)
			for i := int64(0); i < 200; i++ {
				words = append(words, strconv.FormatInt((i*7919+w)%1000, 10))
			}
			sort.Strings(words)
			for _, word := range words {
				crc += int64(crc32.ChecksumIEEE([]byte(word)))
			}
			lock.Lock()
			sum += x ^ crc
			lock.Unlock()
		}(w)
	}
	wait.Wait()
	if sum%5 == 0 {
		runtime.GC()
	}
	return C.int64_t(sum)
}

// Calls that block in the kernel and timers of Go.
//
//export Java_WalkGo_nap
func Java_WalkGo_nap(env, class unsafe.Pointer, microseconds C.int64_t) C.int64_t {
	time.Sleep(time.Duration(microseconds) * time.Microsecond)
	return microseconds
}

func main() {}
