// Creates an order and reads it. Arguments: key file, base URL.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"proofgate.example/proofgate"
)

func main() {
	keyFile, baseURL := os.Args[1], os.Args[2]

	client := &http.Client{Transport: &proofgate.Transport{KeyFile: keyFile}}
	created, err := client.Post(baseURL+"/v1/orders", "application/json", strings.NewReader(`{"item":"book"}`))
	check(created, err)
	order, err := client.Get(baseURL + "/v1/orders/17")
	check(order, err)
	fmt.Println(created.StatusCode, order.StatusCode)
}

func check(response *http.Response, err error) {
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if denial := proofgate.DenialOf(response); denial != nil {
		log.Fatal(denial)
	}
}
