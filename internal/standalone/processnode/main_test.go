package processnode

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"karmada.io/karmada/internal/programs/flags"
)

// The test program is the program that Pods of the tests run: what it does is told
// by a variable.
const actVariable = "KARMADA_TEST_ACT"

func TestMain(m *testing.M) {
	act := os.Getenv(actVariable)
	if act == "" {
		os.Exit(m.Run())
	}
	code, err := play(act)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// play is what a program does in a Pod.
func play(act string) (code int, err error) {
	fmt.Println("arguments:", os.Args[1:])
	switch act {
	case "exit":
		return strconv.Atoi(os.Args[1])
	case "serve":
		return 0, http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := os.Stat(os.Args[2]); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}))
	case "print":
		data, err := os.ReadFile(os.Args[1])
		fmt.Printf("%s at %s\n", data, os.Getenv(flags.PodAddressVariable))
		return 0, err
	case "wait":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("waiting")
		<-signals
		fmt.Println("ending")
		return 0, nil
	case "tick":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-signals:
				fmt.Println("the end")
				return 0, nil
			case <-ticker.C:
				fmt.Println("tick")
				fmt.Fprintln(os.Stderr, "tock")
			}
		}
	default:
		return 0, errors.New("no such act: " + act)
	}
}
