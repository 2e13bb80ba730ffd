<?php
function fetch_stock() {
    return file_get_contents('http://127.0.0.1:8081/stock');
}

echo fetch_stock();
