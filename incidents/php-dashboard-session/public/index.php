<?php
// Sales dashboard: a summary tile and a big export, both behind the same login session.

function run_dir(): string
{
    return getenv('RUN');
}

function open_session(): void
{
    session_save_path(run_dir() . '/sessions');
    session_name('dash');
    session_start();
    $_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
}

function sales_rows(int $from, int $count): array
{
    $rows = [];
    for ($i = $from; $i < $from + $count; $i++) {
        $rows[] = ['id' => $i, 'region' => ['north', 'south', 'west'][$i % 3], 'total' => ($i * 13) % 977];
    }
    return $rows;
}

function export_sales(): void
{
    open_session();
    header('Content-Type: text/csv');
    $out = fopen(run_dir() . '/export-' . getmypid() . '.csv', 'w');
    for ($page = 0; $page < 300; $page++) {
        foreach (sales_rows($page * 200, 200) as $row) {
            fputcsv($out, $row);
        }
        usleep(300000);
    }
    fclose($out);
    echo "done\n";
}

function show_summary(): void
{
    file_put_contents(run_dir() . '/pid', (string) getmypid());
    open_session();
    $sum = [];
    foreach (sales_rows(0, 3000) as $row) {
        $sum[$row['region']] = ($sum[$row['region']] ?? 0) + $row['total'];
    }
    header('Content-Type: application/json');
    echo json_encode($sum), "\n";
}

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
switch ($path) {
    case '/export':
        export_sales();
        break;
    case '/summary':
        show_summary();
        break;
    default:
        http_response_code(404);
        echo "not here\n";
}
