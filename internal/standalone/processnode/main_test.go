package processnode

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"karmada.io/karmada/internal/programs/flags"
)

// The test program is the program that Pods of the tests run: what it does is told
// by a variable.
const actVariable = "KARMADA_TEST_ACT"

const actArgument = "act:"

func TestMain(m *testing.M) {
	act := os.Getenv(actVariable)
	// A command beside the program of a Pod says with its first argument what it does.
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], actArgument) {
		act, os.Args = os.Args[1][len(actArgument):], append(os.Args[:1], os.Args[2:]...)
	}
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
	case "copy":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return 0, err
	case "fail":
		fmt.Fprintln(os.Stderr, "wrong")
		return 7, nil
	case "reach":
		return 0, reach(os.Args[1:])
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

// reach tries what a program must not be able to do: kinds of access and paths by
// turns. It ends with what it could do.
func reach(args []string) error {
	var reached []error
	for i := 0; i+1 < len(args); i += 2 {
		var err error
		switch path := args[i+1]; args[i] {
		case "read":
			_, err = os.ReadFile(path)
		case "list":
			_, err = os.ReadDir(path)
		case "write":
			err = os.WriteFile(path, []byte("written"), 0o600)
		case "remove":
			err = os.Remove(path)
		case "run":
			err = exec.Command(path).Run()
		case "link":
			// A link within what may be written, to what may not be read.
			if err = os.Symlink(path, "link"); err == nil {
				_, err = os.ReadFile("link")
			}
		}
		fmt.Println(args[i], args[i+1], err)
		if err == nil {
			reached = append(reached, fmt.Errorf("reached: %s %s", args[i], args[i+1]))
		}
	}
	return errors.Join(reached...)
}
