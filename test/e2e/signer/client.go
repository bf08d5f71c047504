// Sends one request with net/http and prints the status. Arguments: URL, and a body for a POST.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	response, err := send(os.Args[1], os.Args[2:])
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
}

func send(url string, body []string) (*http.Response, error) {
	if len(body) == 0 {
		return http.Get(url)
	}
	return http.Post(url, "text/plain", strings.NewReader(body[0]))
}
